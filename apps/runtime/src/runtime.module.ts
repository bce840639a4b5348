import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DatabaseModule } from '#database';
import { EmittersModule } from '#emitters';
import { OutboxRelay } from '#outbox';
import { schema } from './database/schema.js';
import { CodeCache } from './components/code-cache.js';
import { ComponentsController } from './components/components.controller.js';
import { PropOptionsController } from './components/prop-options.controller.js';
import { DeploymentsListener } from './deployments/deployments.listener.js';
import { DeploymentsModule } from './deployments/deployments.module.js';
import { EndpointsServer } from './endpoints/endpoints.server.js';
import { EndpointsService } from './endpoints/endpoints.service.js';
import { Housekeeping } from './housekeeping.js';
import { Quotas } from './quotas/quotas.js';
import { QuotasRepository } from './quotas/quotas.repository.js';
import { RunQueue } from './queue/run-queue.js';
import { RunLanes } from './runs/run-lanes.js';
import { RunListController } from './runs/run-list.controller.js';
import { RunsController } from './runs/runs.controller.js';
import { RunsRepository } from './runs/runs.repository.js';
import { SourceLocks } from './runs/source-locks.js';
import { RunsService } from './runs/runs.service.js';
import { RuntimeConfig } from './runtime.config.js';
import { SandboxLife, sandboxProvider } from './sandbox.provider.js';
import { Ticker } from './timers/ticker.js';
import { TimersRepository } from './timers/timers.repository.js';
import { Releaser } from './waiting/releaser.js';
import { WaitingEmitsRepository } from './waiting/waiting-emits.repository.js';

/** The only room where users' code runs: deployments, timers, endpoints, runs, the sandbox. */
@Module({
  imports: [
    DatabaseModule.forApp(schema, { max: 20 }),
    DeploymentsModule,
    ScheduleModule.forRoot(),
    EmittersModule.forRoom({ useClass: DeploymentsListener, imports: [DeploymentsModule] }),
  ],
  controllers: [ComponentsController, PropOptionsController, RunsController, RunListController],
  providers: [
    { provide: RuntimeConfig, useFactory: () => RuntimeConfig.read() },
    sandboxProvider,
    SandboxLife,
    CodeCache,
    Quotas,
    QuotasRepository,
    WaitingEmitsRepository,
    Releaser,
    RunLanes,
    SourceLocks,
    RunsRepository,
    RunsService,
    RunQueue,
    TimersRepository,
    Ticker,
    EndpointsService,
    EndpointsServer,
    OutboxRelay,
    Housekeeping,
  ],
})
export class RuntimeModule {}
