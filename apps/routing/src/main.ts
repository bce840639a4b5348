import { runService } from '#service';
import { settings } from './routing.config.js';
import { RoutingModule } from './routing.module.js';

await runService({ name: 'routing', module: RoutingModule, settings });
