import { Global, Module } from '@nestjs/common';
import { Stats } from './stats.js';
import { StatsRepository } from './stats.repository.js';

/** The statistics of an app. Its database has the table `stat`. */
@Global()
@Module({ providers: [Stats, StatsRepository], exports: [Stats] })
export class StatsModule {}
