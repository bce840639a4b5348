import { Module } from '@nestjs/common';
import { QueueSignal } from '../queue/queue-signal.js';
import { QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { WaitingEmitsRepository } from '../waiting/waiting-emits.repository.js';
import { DeploymentsRepository } from './deployments.repository.js';

const REPOSITORIES = [
  DeploymentsRepository,
  QueuedRunsRepository,
  RetriedRunsRepository,
  SourceStateRepository,
  TimersRepository,
  WaitingEmitsRepository,
];

/** The tables that change with facts about sources and with runs. */
@Module({ providers: [...REPOSITORIES, QueueSignal], exports: [...REPOSITORIES, QueueSignal] })
export class DeploymentsModule {}
