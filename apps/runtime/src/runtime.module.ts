import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { listFullInRouting } from '#contracts';
import { DatabaseModule } from '#database';
import { EmittersModule } from '#emitters';
import { OutboxRelay } from '#outbox';
import { ProtectedBrokersModule } from '#service';
import { StatsModule } from '#stats';
import { WaitingDataModule } from '#waiting-data';
import { schema } from './database/schema.js';
import { AccountsController } from './accounts/accounts.controller.js';
import { CodeCache } from './components/code-cache.js';
import { ComponentsController } from './components/components.controller.js';
import { PropOptionsController } from './components/prop-options.controller.js';
import { DeployedSources } from './deployments/deployed-sources.js';
import { DeploymentsService } from './deployments/deployments.service.js';
import { DeploymentsModule } from './deployments/deployments.module.js';
import { EndpointsServer } from './endpoints/endpoints.server.js';
import { EndpointsService } from './endpoints/endpoints.service.js';
import { FairnessModule } from '#fairness';
import { Housekeeping } from './housekeeping.js';
import { QuotasController } from './quotas/quotas.controller.js';
import { Quotas } from './quotas/quotas.js';
import { QuotasRepository } from './quotas/quotas.repository.js';
import { ComponentConsole } from './runs/component-console.js';
import { RunQueue } from './runs/run-queue.js';
import { RunResults } from './runs/run-results.js';
import { RunStatsController } from './runs/run-stats.controller.js';
import { RunSources } from './runs/run-sources.js';
import { LostRuns } from './runs/lost-runs.js';
import { RestoredRuns } from './runs/restored-runs.js';
import { RunLanes } from './runs/run-lanes.js';
import { RunListController } from './runs/run-list.controller.js';
import { RunsController } from './runs/runs.controller.js';
import { RunsRepository } from './runs/runs.repository.js';
import { SandboxRuns } from './runs/sandbox-runs.js';
import { SourceLocks } from './runs/source-locks.js';
import { RunsService } from './runs/runs.service.js';
import { Retrier } from './retries/retrier.js';
import { RuntimeConfig } from './runtime.config.js';
import { SandboxModule } from './sandbox/sandbox.module.js';
import { Ticker } from './timers/ticker.js';
import { Releaser } from './waiting/releaser.js';
import { WithdrawnEmits } from './waiting/withdrawn-emits.js';
import { WithdrawnSweep } from './waiting/withdrawn-sweep.js';
import { WAITING_DATA } from './waiting-data.js';

/** The only service where users' code runs: deployments, timers, endpoints, runs, the sandbox. */
@Module({
  imports: [
    ProtectedBrokersModule,
    DatabaseModule.forApp(schema, { max: 20 }),
    StatsModule,
    FairnessModule,
    WaitingDataModule.forApp([listFullInRouting], WAITING_DATA),
    DeploymentsModule,
    SandboxModule,
    ScheduleModule.forRoot(),
    EmittersModule.forApp({ useClass: DeploymentsService, imports: [DeploymentsModule, SandboxModule] }),
  ],
  controllers: [
    AccountsController,
    ComponentsController,
    PropOptionsController,
    QuotasController,
    RunsController,
    RunListController,
    RunStatsController,
  ],
  providers: [
    { provide: RuntimeConfig, useFactory: () => RuntimeConfig.read() },
    CodeCache,
    DeployedSources,
    Quotas,
    QuotasRepository,
    Releaser,
    WithdrawnEmits,
    WithdrawnSweep,
    Retrier,
    RunLanes,
    SourceLocks,
    RunsRepository,
    RunSources,
    SandboxRuns,
    ComponentConsole,
    RunResults,
    RunsService,
    RestoredRuns,
    RunQueue,
    Ticker,
    LostRuns,
    EndpointsService,
    EndpointsServer,
    OutboxRelay,
    Housekeeping,
  ],
})
export class RuntimeModule {}
