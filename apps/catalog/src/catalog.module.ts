import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseModule } from '#database';
import { LogReader } from '#messaging';
import { OUTBOX_GATHER_MS, OutboxRelay } from '#outbox';
import { ProtectedBrokersModule } from '#service';
import { AccountsController } from './accounts/accounts.controller.js';
import { CatalogConfig } from './catalog.config.js';
import { Code, ComponentRow } from './components/component.entity.js';
import { CodeFetcher } from './components/code-fetcher.js';
import { RemoteCode } from './components/remote-code.js';
import { ComponentsController } from './components/components.controller.js';
import { ComponentsRepository } from './components/components.repository.js';
import { ComponentsService } from './components/components.service.js';
import { ConnectionRow } from './sources/connection.entity.js';
import { ConnectionsController } from './connections/connections.controller.js';
import { ConnectionsRepository } from './sources/connections.repository.js';
import { ConnectionsService } from './connections/connections.service.js';
import { schema } from './database/schema.js';
import { EmittersController } from './emitters/emitters.controller.js';
import { Reconciliation } from './emitters/reconciliation.js';
import { RestoreRow, RestoresRepository } from './emitters/restores.repository.js';
import { OwnComponents, RegistryService } from './registry/registry.service.js';
import { RegistryController } from './registry/registry.controller.js';
import { RegistryRepository } from './registry/registry.repository.js';
import { AccountTurns } from './sources/account-turns.js';
import { SourceRow } from './sources/source.entity.js';
import { SourceStatesRepository } from './sources/source-states.repository.js';
import { SourcesController } from './sources/sources.controller.js';
import { SourcesRepository } from './sources/sources.repository.js';
import { SourcesService } from './sources/sources.service.js';
import { WorkflowRow, WorkflowsRepository } from './workflows/workflows.repository.js';
import { WorkflowsController } from './workflows/workflows.controller.js';
import { WorkflowsProgress } from './workflows/workflows-progress.js';

/** Components, sources and the registry of workflows, with their owners. */
@Module({
  imports: [
    ProtectedBrokersModule,
    DatabaseModule.forApp(schema),
    TypeOrmModule.forFeature([Code, ComponentRow, ConnectionRow, RestoreRow, SourceRow, WorkflowRow]),
  ],
  controllers: [
    AccountsController,
    ComponentsController,
    ConnectionsController,
    SourcesController,
    EmittersController,
    RegistryController,
    WorkflowsController,
  ],
  providers: [
    { provide: CatalogConfig, useFactory: () => CatalogConfig.read() },
    AccountTurns,
    CodeFetcher,
    RemoteCode,
    ComponentsRepository,
    ComponentsService,
    ConnectionsRepository,
    ConnectionsService,
    RegistryRepository,
    RegistryService,
    OwnComponents,
    SourcesRepository,
    SourceStatesRepository,
    LogReader,
    Reconciliation,
    RestoresRepository,
    SourcesService,
    WorkflowsProgress,
    WorkflowsRepository,
    OutboxRelay,
    // its facts have been announced
    { provide: OUTBOX_GATHER_MS, useValue: 100 },
  ],
})
export class CatalogModule {}
