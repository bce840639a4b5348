import { randomBytes } from 'node:crypto';
import { type EmitterState, newId, type SourceId, Unavailable, type UserId, type WebhookId, type WorkflowId } from '#contracts';
import { EmitterDirectory } from '#emitters';
import type { Messages } from '#messaging';
import { SecretBox } from '#secrets';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from './database/schema.js';
import { BacklogsRepository } from './deliveries/store/backlogs.repository.js';
import { RoutingWebhookDependents } from './routing-webhook-dependents.js';
import { RoutingConfig } from './routing.config.js';
import { AutoSubscriptionRow, AutoSubscriptionsRepository } from './subscriptions/auto-subscriptions.repository.js';
import { EndedEmittersRepository } from './subscriptions/ended-emitters.repository.js';
import { EmitterChanges } from './subscriptions/emitter-changes.js';
import { SubscriptionRow, SubscriptionsRepository } from './subscriptions/subscriptions.repository.js';
import { SubscriptionsService } from './subscriptions/subscriptions.service.js';
import { WebhookRow } from './webhooks/webhook.entity.js';
import { WebhooksRepository } from './webhooks/webhooks.repository.js';
import { WebhooksService } from './webhooks/webhooks.service.js';

/** The part of routing that handles users' requests, on a separate database. `catalog` is what the catalog knows. */
export class RoutingFixture {
  /** Emitters that the catalog knows and routing does not know yet. */
  readonly catalog = new Map<string, EmitterState>();
  catalogResponds = true;
  /** Encrypts the signing secrets. */
  readonly box = new SecretBox([randomBytes(32)]);
  readonly config = RoutingConfig.read({});
  readonly backlogs: BacklogsRepository;
  readonly webhooks: WebhooksRepository;
  readonly webhooksService: WebhooksService;
  readonly subscriptions: SubscriptionsRepository;
  readonly directory: EmitterDirectory;
  readonly service: SubscriptionsService;

  readonly changes: EmitterChanges;

  private constructor(readonly own: FreshDatabase) {
    const { database } = own;
    this.backlogs = new BacklogsRepository(database);
    this.webhooks = new WebhooksRepository(database, database.rows(WebhookRow), new RoutingWebhookDependents(this.backlogs));
    this.webhooksService = new WebhooksService(this.webhooks, this.config, this.box);
    this.subscriptions = new SubscriptionsRepository(database, database.rows(SubscriptionRow), new EndedEmittersRepository(database));
    const autoSubscriptions = new AutoSubscriptionsRepository(database.rows(AutoSubscriptionRow));
    const ask = async (_: unknown, { ids, owner_id }: { ids?: string[]; owner_id?: UserId }) => {
      if (!this.catalogResponds) throw new Unavailable('away');
      const known = [...this.catalog.values()];
      return ids
        ? known.filter((state) => ids.includes(state.emitter_id))
        : known.filter((state) => state.owner_id === owner_id).map(({ emitter_id }) => emitter_id);
    };
    const messages = { request: ask } as unknown as Messages;
    this.changes = new EmitterChanges(this.subscriptions, autoSubscriptions);
    this.directory = new EmitterDirectory(database, messages, this.changes);
    this.service = new SubscriptionsService(database, this.subscriptions, autoSubscriptions, this.webhooks, this.directory, this.config);
  }

  static async open(): Promise<RoutingFixture> {
    return new RoutingFixture(await freshDatabase(schema));
  }

  get database(): FreshDatabase['database'] {
    return this.own.database;
  }

  close(): Promise<void> {
    return this.own.drop();
  }

  async webhook(ownerId: UserId, change: { active?: boolean } = {}): Promise<WebhookId> {
    const id = newId('webhook');
    await this.webhooksService.create({ id, owner_id: ownerId, url: 'https://example.com/' });
    if (change.active === false) await this.webhooksService.update({ id, owner_id: ownerId, active: false });
    return id;
  }

  state(ownerId: UserId, id: SourceId | WorkflowId, change: Partial<EmitterState> = {}): EmitterState {
    const kind = id.startsWith('dc_') ? 'source' : 'workflow';
    return {
      emitter_id: id,
      kind,
      owner_id: ownerId,
      active: true,
      deleted: false,
      version: 1,
      name: '',
      created_at_ms: Date.now(),
      ...change,
    };
  }

  /** An emitter that routing knows. */
  async source(ownerId: UserId, change: Partial<EmitterState> = {}): Promise<SourceId> {
    const id = newId('source');
    await this.directory.learn(this.state(ownerId, id, change));
    return id;
  }

  async workflow(ownerId: UserId, change: Partial<EmitterState> = {}): Promise<WorkflowId> {
    const id = newId('workflow');
    await this.directory.learn(this.state(ownerId, id, change));
    return id;
  }
}
