import { runService } from '#service';
import { RuntimeModule } from './runtime.module.js';

await runService({ name: 'runtime', module: RuntimeModule });
