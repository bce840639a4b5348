import { runService } from '#service';
import { EventStoreModule } from './event-store.module.js';

await runService({ name: 'event-store', module: EventStoreModule });
