import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DeliveriesModule } from '../deliveries/deliveries.module.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { ReplayRow } from './replay.entity.js';
import { ReplayLog } from './replay-log.js';
import { Replayer } from './replayer.js';
import { ReplaysController } from './replays.controller.js';
import { ReplaysRepository } from './replays.repository.js';

/** Events of the log, delivered once more. */
@Module({
  imports: [TypeOrmModule.forFeature([ReplayRow]), DeliveriesModule, WebhooksModule],
  controllers: [ReplaysController],
  providers: [ReplaysRepository, ReplayLog, Replayer],
})
export class ReplaysModule {}
