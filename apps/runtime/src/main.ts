import { runService } from '#service';
import { settings } from './runtime.config.js';
import { RuntimeModule } from './runtime.module.js';

await runService({ name: 'runtime', module: RuntimeModule, settings });
