import { runService } from '#service';
import { settings } from './event-store.config.js';
import { EventStoreModule } from './event-store.module.js';
import { schema } from './database/schema.js';

await runService({ name: 'event-store', module: EventStoreModule, schema, settings });
