import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { endpointUrl } from '#config';
import {
  ComponentOptions,
  componentOptions,
  findCredentials,
  Invalid,
  hasTooManyParts,
  ksuid,
  MASK,
  MAX_JSON_PARTS,
  NotFound,
  type OptionsRequest,
  type PropDefinition,
  type PropOptions,
  SluiceError,
  SourceOptions,
  sourceOptions,
  type UserId,
} from '#contracts';
import { Handles, Messages } from '#messaging';
import { SecretBox } from '#secrets';
import { LimitPerKey } from '#limits';
import { AccountPace, KILL_UNITS, MS_PER_UNIT, RUN_UNITS } from '#fairness';
import { DeployedSources } from '../deployments/deployed-sources.js';
import { openedProps, withoutMasks } from '../deployments/opened-props.js';
import { RuntimeConfig } from '../runtime.config.js';
import { KILLED, type OptionsCall, type RunOutcome, Sandbox } from '../sandbox/sandbox.js';
import { scheduleOf, timerValue } from '../timers/next-tick.js';
import { CodeCache } from './code-cache.js';
import { namedConnections, withCredentials } from './connected-values.js';

/** Shorter than the caller's timeout. */
const OPTIONS_MS = 20_000;
/** Each occupies one of the 128 requests that this process handles at a time, and may last as long as the code wants. */
const OPTIONS_PER_ACCOUNT = 8;
const OPTIONS_OF_ALL = 32;
/** In characters. */
const LONGEST_MESSAGE = 2000;

/** The component, and the values of its props. */
interface Target {
  codeHash: string;
  /** Determines the process if each source has a separate one. */
  sourceId: string;
  endpoint: string | null;
  values: Record<string, unknown>;
}

/** The values that a prop may have: a fixed list, or what the component's `options()` returns in the sandbox. */
@Controller()
export class PropOptionsController {
  private readonly calls = new LimitPerKey<UserId>(OPTIONS_PER_ACCOUNT, OPTIONS_OF_ALL);

  constructor(
    private readonly sources: DeployedSources,
    private readonly codes: CodeCache,
    private readonly box: SecretBox,
    private readonly sandbox: Sandbox,
    private readonly messages: Messages,
    private readonly pace: AccountPace,
    private readonly config: RuntimeConfig,
  ) {}

  @Handles(sourceOptions)
  async ofSource(@Payload() { owner_id, source_id, prop, ...request }: SourceOptions): Promise<PropOptions> {
    const row = await this.sources.find(source_id);
    if (!row || row.owner_id !== owner_id) throw new NotFound('source', source_id);
    const own = openedProps(this.box, row.source_id, row);
    const values = { ...own, ...row.schedules, ...withoutMasks(request.configured_props ?? {}, own) };
    const endpoint = row.endpoint_key === null ? null : endpointUrl(this.config.endpointsUrl, row.endpoint_key);
    return this.options(owner_id, { codeHash: row.code_hash, sourceId: source_id, endpoint, values }, prop, request);
  }

  @Handles(componentOptions)
  async ofComponent(@Payload() { owner_id, code_hash, prop, ...request }: ComponentOptions): Promise<PropOptions> {
    const values = request.configured_props ?? {};
    const masked = Object.keys(values).find((name) => JSON.stringify(values[name]).includes(MASK));
    if (masked !== undefined)
      throw new Invalid([
        { field: `configured_props.${masked}`, message: `configured_props.${masked} is masked: send its value, or ask the source` },
      ]);
    return this.options(owner_id, { codeHash: code_hash, sourceId: code_hash, endpoint: null, values }, prop, request);
  }

  private async options(
    owner: UserId,
    { codeHash, sourceId, endpoint, values }: Target,
    prop: string,
    { query, page, prev_context }: OptionsRequest,
  ): Promise<PropOptions> {
    const { component, description } = await this.codes.get(owner, codeHash);
    const definition = description.configurable_props.find(({ name }) => name === prop);
    if (!definition) throw new NotFound('prop', prop);
    if (Array.isArray(definition.options)) return { options: definition.options as unknown[], context: null };
    if (definition.remoteOptions !== true) throw new Invalid(`the prop ${prop} has no options`);
    return this.calls.run(owner, 'too many calls of options() are in progress; try again in a moment', async () => {
      const call: OptionsCall = { prop, query: query ?? null, page: page ?? 0, prev_context: prev_context ?? null };
      await this.pace.runTurn(owner, RUN_UNITS);
      const outcome = await this.sandbox.run({
        runId: ksuid(),
        accountId: owner,
        sourceId,
        component,
        method: 'options',
        props: await this.connected(owner, description.configurable_props, withTimers(description.configurable_props, values)),
        endpoint,
        db: {},
        event: JSON.stringify(call),
        wallMs: OPTIONS_MS,
      });
      const begun = performance.now();
      try {
        return optionsOf(outcome);
      } finally {
        const ms = outcome.mainMs + performance.now() - begun;
        this.pace.spendOn('run', owner, ms / MS_PER_UNIT + (KILLED.includes(outcome.status) ? KILL_UNITS : 0));
      }
    });
  }

  /** As in a run: a connection that the values name becomes its credentials. */
  private async connected(owner: UserId, props: PropDefinition[], values: Record<string, unknown>): Promise<Record<string, unknown>> {
    const named = namedConnections(props, values);
    if (named.length === 0) return values;
    const ids = named.map(({ id }) => id);
    return withCredentials(
      values,
      named,
      await this.messages.request(findCredentials, { owner_id: owner, ids }, { account: owner }),
      this.box,
    );
  }
}

/** The timers as in a run; a value that is not a schedule remains as it is. */
function withTimers(props: PropDefinition[], values: Record<string, unknown>): Record<string, unknown> {
  const timers = props
    .filter(({ type }) => type === '$.interface.timer')
    .flatMap((timer) => {
      const schedule = scheduleOf((Object.hasOwn(values, timer.name) ? values[timer.name] : undefined) ?? timer.default);
      return schedule ? [[timer.name, timerValue(schedule)] as const] : [];
    });
  return { ...values, ...Object.fromEntries(timers) };
}

/** @throws SluiceError if there are none, or too many */
function optionsOf({ status, error, emits }: RunOutcome): PropOptions {
  const result = emits.at(-1)?.event;
  if (result !== undefined && hasTooManyParts(result))
    throw new SluiceError('unprocessable', `options() returned too many values: more than ${MAX_JSON_PARTS} JSON values and names`);
  const found = result === undefined ? undefined : (JSON.parse(result) as unknown);
  if (status !== 'ok' || !isPropOptions(found))
    throw new SluiceError('unprocessable', (error?.message ?? 'options() returned nothing').slice(0, LONGEST_MESSAGE).toWellFormed());
  return found;
}

/** Code that has taken over the process may emit anything. */
function isPropOptions(value: unknown): value is PropOptions {
  const { options, context } = (value ?? {}) as Partial<Record<keyof PropOptions, unknown>>;
  return Array.isArray(options) && typeof context === 'object' && !Array.isArray(context);
}
