import { Module } from '@nestjs/common';
import { DeliveriesModule } from '../deliveries/deliveries.module.js';
import { MatchRepository } from './match.repository.js';
import { MatchService } from './match.service.js';
import { MissedEvents } from './missed-events.js';
import { Router } from './router.js';
import { RoutesController } from './routes.controller.js';

@Module({ imports: [DeliveriesModule], controllers: [RoutesController], providers: [MatchRepository, MatchService, MissedEvents, Router] })
export class RoutesModule {}
