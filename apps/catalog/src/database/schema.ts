import { connectionContext, propsContext } from '#contracts';
import { schemaOf } from '#database';
import { outboxSchema } from '#outbox';
import { Code, ComponentRow, StoredCode } from '../components/component.entity.js';
import { ConnectionRow } from '../sources/connection.entity.js';
import { RestoreRow } from '../emitters/restores.repository.js';
import { DeletedSourceRow, SourceRow, SuspendedAccountRow } from '../sources/source.entity.js';
import { WorkflowRow } from '../workflows/workflows.repository.js';
import { CreateCatalog1795305600002 } from './migrations/0001-create-catalog.js';
import { BundlesOfPackages1795305600012 } from './migrations/0002-bundles-of-packages.js';
import { CountStoredCode1795910400003 } from './migrations/0003-count-stored-code.js';
import { VersionsGrowWithTime1795996800004 } from './migrations/0004-versions-grow-with-time.js';
import { SuspendAccounts1796947200002 } from './migrations/0005-suspend-accounts.js';
import { NoteRestores1796947200006 } from './migrations/0006-note-restores.js';
import { KnowSuspendedAccounts1797897600001 } from './migrations/0007-know-suspended-accounts.js';
import { SuspendAccountsOfWorkflows1797897600003 } from './migrations/0008-suspend-accounts-of-workflows.js';
import { NoteRemovalsOfWorkflows1798473600001 } from './migrations/0009-note-removals-of-workflows.js';
import { IndexComponentsOfOwner1798732800001 } from './migrations/0010-index-components-of-owner.js';
import { MarkShippedComponents1798732800002 } from './migrations/0011-mark-shipped-components.js';
import { NoteDeletedSources1798905600001 } from './migrations/0012-note-deleted-sources.js';
import { ShortenNamesOfWorkflows1799164800001 } from './migrations/0013-shorten-names-of-workflows.js';
import { NoteRemovedComponents1799251200001 } from './migrations/0014-note-removed-components.js';

export const schema = schemaOf('catalog', outboxSchema, {
  entities: [Code, ComponentRow, StoredCode, ConnectionRow, RestoreRow, DeletedSourceRow, SourceRow, SuspendedAccountRow, WorkflowRow],
  sealed: [
    { table: 'connection', key: ['id'], column: 'credentials', context: connectionContext },
    { table: 'source', key: ['id'], column: 'configured_props', json: true, context: propsContext },
  ],
  migrations: [
    CreateCatalog1795305600002,
    BundlesOfPackages1795305600012,
    CountStoredCode1795910400003,
    VersionsGrowWithTime1795996800004,
    SuspendAccounts1796947200002,
    NoteRestores1796947200006,
    KnowSuspendedAccounts1797897600001,
    SuspendAccountsOfWorkflows1797897600003,
    NoteRemovalsOfWorkflows1798473600001,
    IndexComponentsOfOwner1798732800001,
    MarkShippedComponents1798732800002,
    NoteDeletedSources1798905600001,
    ShortenNamesOfWorkflows1799164800001,
    NoteRemovedComponents1799251200001,
  ],
});
