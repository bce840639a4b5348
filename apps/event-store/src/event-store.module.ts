import { Module } from '@nestjs/common';
import { DatabaseModule } from '#database';
import { EmittersModule } from '#emitters';
import { AppendModule } from './append/append.module.js';
import { EventPagesModule } from './pages/event-pages.module.js';

@Module({ imports: [DatabaseModule.forApp('event_store'), EmittersModule.forRoom(), AppendModule, EventPagesModule] })
export class EventStoreModule {}
