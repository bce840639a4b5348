import { Module } from '@nestjs/common';
import { DatabaseModule } from '#database';
import { EmittersModule } from '#emitters';
import { AppendModule } from './append/append.module.js';
import { schema } from './database/schema.js';
import { EventPagesController } from './pages/event-pages.controller.js';
import { EventPagesRepository } from './pages/event-pages.repository.js';
import { EventPagesService } from './pages/event-pages.service.js';
import { DeletedEmitters, SweepService } from './retention/sweep.service.js';

/** The last events of each emitter: stored, listed, deleted. */
@Module({
  imports: [DatabaseModule.forApp(schema), EmittersModule.forApp({ useClass: DeletedEmitters, imports: [AppendModule] }), AppendModule],
  controllers: [EventPagesController],
  providers: [EventPagesService, EventPagesRepository, SweepService],
})
export class EventStoreModule {}
