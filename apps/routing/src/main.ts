import { runService } from '#service';
import { settings } from './routing.config.js';
import { RoutingModule } from './routing.module.js';
import { schema } from './database/schema.js';

await runService({ name: 'routing', module: RoutingModule, schema, settings });
