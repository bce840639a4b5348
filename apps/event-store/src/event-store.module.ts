import { Module } from '@nestjs/common';
import { DatabaseModule } from '#database';
import { EmittersModule } from '#emitters';
import { schema } from './database/schema.js';
import { AppendModule } from './append/append.module.js';
import { EventPagesModule } from './pages/event-pages.module.js';
import { StoredPositionsModule } from './positions/stored-positions.module.js';
import { DeletedEmitters } from './retention/deleted-emitters.js';
import { RetentionModule } from './retention/retention.module.js';
import { WithdrawnEmitsModule } from './withdrawn/withdrawn-emits.module.js';

@Module({
  imports: [
    DatabaseModule.forApp(schema),
    EmittersModule.forApp({ useClass: DeletedEmitters, imports: [RetentionModule] }),
    AppendModule,
    EventPagesModule,
    StoredPositionsModule,
    RetentionModule,
    WithdrawnEmitsModule,
  ],
})
export class EventStoreModule {}
