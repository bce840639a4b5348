import { runService } from '#service';
import { RoutingModule } from './routing.module.js';

await runService({ name: 'routing', module: RoutingModule });
