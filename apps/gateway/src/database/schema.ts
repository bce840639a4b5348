import { schemaOf } from '#database';
import { emittersSchema } from '#emitters';
import { AccountRow, ApiKeyRow } from '../accounts/account.entity.js';
import { ErrorMail, ErrorNotice, SeenError } from '../error-mail/error-notices.repository.js';
import { IdempotentRequest, responseContext } from '../idempotency/idempotency.repository.js';
import { CountedRun, UsageRow } from '../usage/usage.repository.js';
import { CreateGateway1795305600003 } from './migrations/0001-create-gateway.js';
import { RenewClaims1795910400002 } from './migrations/0002-renew-claims.js';
import { SuspendAccounts1796947200003 } from './migrations/0003-suspend-accounts.js';
import { LeaseClaims1796947200005 } from './migrations/0004-lease-claims.js';
import { QueueErrorMail1798560000001 } from './migrations/0005-queue-error-mail.js';
import { DeleteRevokedKeys1798560000002 } from './migrations/0006-delete-revoked-keys.js';
import { OrderErrorMail1798560000003 } from './migrations/0007-order-error-mail.js';

export const schema = schemaOf('gateway', emittersSchema, {
  entities: [AccountRow, ApiKeyRow, UsageRow, CountedRun, IdempotentRequest, ErrorNotice, SeenError, ErrorMail],
  sealed: [{ table: 'idempotent_request', key: ['account_id', 'key'], column: 'body', context: responseContext }],
  migrations: [
    CreateGateway1795305600003,
    RenewClaims1795910400002,
    SuspendAccounts1796947200003,
    LeaseClaims1796947200005,
    QueueErrorMail1798560000001,
    DeleteRevokedKeys1798560000002,
    OrderErrorMail1798560000003,
  ],
});
