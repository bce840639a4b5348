import { Module } from '@nestjs/common';
import { DeliveriesRepository } from './deliveries.repository.js';
import { Dispatcher } from './dispatcher.js';
import { Retrier } from './retrier.js';
import { Targets } from './targets.js';

@Module({ providers: [DeliveriesRepository, Targets, Dispatcher, Retrier], exports: [Dispatcher] })
export class DeliveriesModule {}
