import { Module } from '@nestjs/common';
import { DeliveriesModule } from '../deliveries/deliveries.module.js';
import { MatchRepository } from './match.repository.js';
import { MatchService } from './match.service.js';
import { Router } from './router.js';
import { RoutesConsumer } from './routes.consumer.js';

@Module({ imports: [DeliveriesModule], providers: [MatchRepository, MatchService, Router, RoutesConsumer] })
export class RoutesModule {}
