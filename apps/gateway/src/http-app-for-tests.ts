import { Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import {
  type Component,
  createComponent,
  type CreateComponent,
  createSource,
  type CreateSource,
  getSource,
  type PatchSource,
  patchSource,
  type Source,
  type SourceReference,
  Unavailable,
  type UpdateSource,
  updateSource,
} from '#contracts';
import { AccountPace } from '#fairness';
import { Messages } from '#messaging';
import { createLog, LOG } from '#observability';
import { FakeMessages } from '#testing';
import { FullAccounts } from '#waiting-data';
import { AccountsService } from './accounts/accounts.service.js';
import { KeysController } from './accounts/keys.controller.js';
import { ComponentsController } from './components/components.controller.js';
import { RegistryController } from './components/registry.controller.js';
import { ConnectionsController } from './connections/connections.controller.js';
import { createHttpApp } from './create-http-app.js';
import { LargePages } from './http/large-pages.js';
import { FieldsInterceptor } from './http/fields.js';
import { GatewayConfig } from './gateway.config.js';
import { IdempotencyInMemory } from './idempotency/idempotency-in-memory-for-tests.js';
import { IdempotencyRepository } from './idempotency/idempotency.repository.js';
import { LateResponses } from './idempotency/idempotent-posts.js';
import { LiveController } from './live/live.controller.js';
import { LiveStreamsService } from './live/live-streams.service.js';
import { PublishingController } from './publishing/publishing.controller.js';
import { type Acknowledged, PublishingService } from './publishing/publishing.service.js';
import { ReplaysController } from './replays/replays.controller.js';
import { PropOptionsController } from './sources/prop-options.controller.js';
import { SourcesController } from './sources/sources.controller.js';
import { DeliveriesController } from './webhooks/deliveries.controller.js';
import { WebhooksController } from './webhooks/webhooks.controller.js';

export const ME = 'u_000000000000000001';
export const NEIGHBOUR = 'u_000000000000000002';
export const SOURCE = 'dc_000000000000000001';
export const KEY = { authorization: 'Bearer my-key' };
const silent = createLog('test', 'silent');

/** The HTTP side of the gateway: with controllers, without a database, and with other services that reply as a test says. It knows five keys. */
export class HttpAppForTests {
  app!: NestFastifyApplication;
  /** Records the requests and messages to other services. */
  messages!: FakeMessages;
  /** The units for which requests were delayed, and those that were counted. */
  turns!: [account: string, units: number][];
  spent!: [account: string, units: number][];
  /** The ids of API keys. */
  issued!: string[];
  /** The API keys that were looked up, and those that were revoked, or whose accounts were suspended. */
  lookedUp!: string[];
  revoked!: Set<string>;
  suspended!: Set<string>;
  /** How long an account is known, in ms. */
  knownMs!: number;
  /** Refuses the requests of an account whose data fills its share. */
  refuseFull!: (id: string) => void;
  /** Returns the emit ids; `acted`: how often it has published some. */
  publishing!: { acted: number; ids: Acknowledged[]; publish(): Promise<Acknowledged[]>; published(): Acknowledged[] };
  private variables: Record<string, string | undefined> = {};

  /** Before each test. */
  reset(): void {
    this.turns = [];
    this.spent = [];
    this.issued = [];
    this.lookedUp = [];
    this.revoked = new Set();
    this.suspended = new Set(['suspended-key']);
    this.knownMs = 60_000;
    this.refuseFull = () => {};
    this.publishing = {
      acted: 0,
      ids: [],
      async publish() {
        this.acted++;
        return this.ids;
      },
      published() {
        return this.ids;
      },
    };
    this.messages = new FakeMessages()
      .replyTo(getSource, ({ id }: SourceReference) => ({ id, name: 'one', active: true }) as Source)
      .replyTo(createComponent, ({ id }: CreateComponent) => ({ id }) as Component)
      .replyTo(updateSource, ({ id }: UpdateSource) => ({ id }) as Source)
      .replyTo(patchSource, ({ id }: PatchSource) => ({ id }) as Source)
      .replyTo(createSource, ({ id, name = 'one' }: CreateSource) => ({ id, name }) as Source);
  }

  /** With these environment variables, until it is closed. */
  async start(changed: Record<string, string> = {}): Promise<void> {
    this.variables = Object.fromEntries(Object.keys(changed).map((name) => [name, process.env[name]]));
    Object.assign(process.env, changed);
    const accounts = {
      authenticate: async (key: string) => {
        this.lookedUp.push(key);
        if (!/^(my|other|read|neighbour|suspended)-key$/.test(key) || this.revoked.has(key)) return undefined;
        return {
          id: key === 'neighbour-key' ? NEIGHBOUR : ME,
          scope: key === 'read-key' ? 'read' : 'write',
          suspended_at: this.suspended.has(key) ? new Date() : null,
          until: performance.now() + this.knownMs,
        };
      },
      issueKey: async (_: string, __: object, id: string) => {
        this.issued.push(id);
        throw new Unavailable('the connection was lost at COMMIT');
      },
    };
    const pace = {
      delayRequest: async (account: string, units: number) => void this.turns.push([account, units]),
      spend: (account: string, units: number) => this.spent.push([account, units]),
    };
    @Module({
      controllers: [
        ComponentsController,
        ConnectionsController,
        DeliveriesController,
        KeysController,
        LiveController,
        PropOptionsController,
        PublishingController,
        RegistryController,
        ReplaysController,
        SourcesController,
        WebhooksController,
      ],
      providers: [
        { provide: APP_INTERCEPTOR, useClass: LateResponses },
        { provide: APP_INTERCEPTOR, useClass: FieldsInterceptor },
        { provide: AccountsService, useValue: accounts },
        { provide: IdempotencyRepository, useValue: new IdempotencyInMemory() },
        { provide: LiveStreamsService, useValue: {} },
        { provide: Messages, useValue: this.messages },
        { provide: PublishingService, useValue: this.publishing },
        { provide: LOG, useValue: silent },
        { provide: AccountPace, useValue: pace },
        { provide: GatewayConfig, useFactory: () => GatewayConfig.read() },
        LargePages,
        { provide: FullAccounts, useValue: { refuseFull: (id: string) => this.refuseFull(id) } },
      ],
    })
    class HttpModule {}
    this.app = await createHttpApp({ module: HttpModule }, silent);
    await this.app.init();
    await this.app.getHttpAdapter().getInstance().ready();
  }

  async close(): Promise<void> {
    await this.app.close();
    for (const [name, value] of Object.entries(this.variables)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }

  /** With the key of `ME`, unless the headers contain another one. */
  async send(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    { headers = {}, body }: { headers?: object; body?: unknown } = {},
  ) {
    const payload = body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const response = await this.app.inject({ method, url, headers: { ...KEY, ...type, ...headers } as Record<string, string>, ...payload });
    const { statusCode: status } = response;
    return { status, headers: response.headers, body: response.body === '' ? undefined : JSON.parse(response.body) };
  }
}
