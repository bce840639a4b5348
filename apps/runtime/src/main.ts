import { runService } from '#service';
import { settings } from './runtime.config.js';
import { RuntimeModule } from './runtime.module.js';
import { schema } from './database/schema.js';

await runService({ name: 'runtime', module: RuntimeModule, schema, settings });
