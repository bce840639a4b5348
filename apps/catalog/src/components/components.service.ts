import { Injectable } from '@nestjs/common';
import {
  type CodeSource,
  type Component,
  type ComponentCodeReply,
  type ComponentId,
  type CreateComponent,
  Invalid,
  isId,
  isText,
  NotFound,
  type UserId,
} from '#contracts';
import { Database } from '#database';
import { SharedWork } from '#limits';
import { Messages } from '#messaging';
import { CatalogConfig } from '../catalog.config.js';
import { codeHash, componentOf, type DescribedComponent, type InspectedCode, type NewComponent } from './component.entity.js';
import { ComponentsRepository } from './components.repository.js';
import { inspectCode, inspectUntil } from './inspect-code.js';
import { MAX_URL_LENGTH } from './code-fetcher.js';
import { RemoteCode } from './remote-code.js';

@Injectable()
export class ComponentsService {
  /** By owner and hash. */
  private readonly inspections = new SharedWork<string, InspectedCode>();

  constructor(
    private readonly components: ComponentsRepository,
    private readonly database: Database,
    private readonly messages: Messages,
    private readonly remote: RemoteCode,
    private readonly config: CatalogConfig,
  ) {}

  /** @param deadline when the caller stops waiting, in ms since the epoch */
  async create({ id, owner_id, ...from }: CreateComponent, deadline = Infinity): Promise<Component> {
    const code = await this.submitted(owner_id, from, deadline);
    await this.keep({ id, owner_id, code, component_url: storedUrl(from) });
    return this.get(owner_id, id);
  }

  /** By id, or by key: then the newest version. */
  async get(ownerId: UserId, keyOrId: string): Promise<Component> {
    const byId = isId('component', keyOrId) ? await this.components.findVisible(ownerId, keyOrId) : undefined;
    const row = byId ?? (await this.components.findNewest(ownerId, keyOrId));
    if (!row) throw new NotFound('component', keyOrId);
    return componentOf(row);
  }

  async getRegistered(key: string): Promise<Component> {
    const row = await this.components.findRegistered(key);
    if (!row) throw notRegistered(key);
    return componentOf(row);
  }

  async code(hash: string): Promise<ComponentCodeReply> {
    const found = await this.components.findCode(hash);
    if (!found) throw new NotFound('code', hash);
    const { code, description, bundle } = found;
    return { code, description, ...(bundle && { bundle: bundle.toString('base64') }) };
  }

  /** A component of which the owner may create a source. */
  async usable(ownerId: UserId, id: string): Promise<DescribedComponent> {
    const component = isId('component', id) ? await this.components.describeUsable(ownerId, id) : undefined;
    if (!component) throw new NotFound('component', id);
    return component;
  }

  async registered(key: string): Promise<DescribedComponent> {
    const component = await this.components.describeRegistered(key);
    if (!component) throw notRegistered(key);
    return component;
  }

  /** The given or fetched code, inspected before the caller stops waiting. If the code is given, the URL is only stored. */
  private async submitted(ownerId: UserId, { component_code, component_url }: CodeSource, deadline: number): Promise<InspectedCode> {
    const until = inspectUntil(deadline);
    const code = component_code ?? (component_url ? await this.fetched(ownerId, component_url, until) : undefined);
    if (typeof code !== 'string') throw new Invalid([{ field: 'component_code', message: 'component_code or component_url is required' }]);
    const bytes = Buffer.byteLength(code, 'utf8');
    if (bytes > this.config.maxCodeBytes) {
      throw new Invalid([{ field: 'component_code', message: `the code has ${bytes} bytes; the limit is ${this.config.maxCodeBytes}` }]);
    }
    const known = await this.components.findCode(codeHash(code));
    if (known) return known;
    await this.components.requireWithin(ownerId, bytes, this.config.maxStoredCodeBytes);
    return this.inspected(ownerId, code, until);
  }

  private fetched(ownerId: UserId, url: string, until: number): Promise<string> {
    if (url.length > MAX_URL_LENGTH) {
      throw new Invalid([{ field: 'component_url', message: `component_url must be at most ${MAX_URL_LENGTH} characters long` }]);
    }
    return this.remote.read(ownerId, url, until);
  }

  /** Of the same code that one owner submits several times at once, the first inspection is used for all. */
  private inspected(ownerId: UserId, code: string, until: number): Promise<InspectedCode> {
    return this.inspections.do(`${ownerId} ${codeHash(code)}`, until, () => inspectCode(this.messages, code, { ownerId, until }));
  }

  /** A component of code that came with a source: inspected, but not stored yet. */
  async prepare(ownerId: UserId, id: ComponentId, from: CodeSource, deadline: number): Promise<NewComponent> {
    return { id, owner_id: ownerId, code: await this.submitted(ownerId, from, deadline), component_url: storedUrl(from) };
  }

  keep(component: NewComponent): Promise<void> {
    return this.components.add(this.database, component, this.config.maxStoredCodeBytes);
  }
}

const notRegistered = (key: string): NotFound => new NotFound('registered component', key, 'GET /v1/registry lists them');

/**
 * Beside code, the URL is not validated: anything but a URL of at most 2048 characters counts as absent. The column is not encrypted, so user name and password
 * are removed.
 */
function storedUrl({ component_url }: CodeSource): string | null {
  if (!isText(component_url) || component_url.length > MAX_URL_LENGTH || !URL.canParse(component_url)) return null;
  const url = new URL(component_url);
  url.username = '';
  url.password = '';
  // an escape has several characters
  return url.href.length > MAX_URL_LENGTH ? null : url.href;
}
