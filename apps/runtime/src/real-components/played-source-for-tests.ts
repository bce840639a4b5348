import { httpEvent } from '../endpoints/http-event.js';
import { dedupe, type DedupeState } from '../source-state/dedupe.js';
import { jobOf } from '../sandbox/sandbox-for-tests.js';
import type { ComponentDescription, Emit, HttpReply, RunJob, Sandbox } from '../sandbox/sandbox.js';
import { timerEvent } from '../timers/next-tick.js';

export interface Played {
  /** The events after dedupe, in the order of publication */
  emits: Emit[];
  reply: { status: number; body: string } | null;
}

/** A source that keeps its state from run to run like in the runtime, without the services around it. */
export class PlayedSource {
  readonly endpoint = 'https://endpoint.test/abcdefgh';
  private readonly db: Record<string, string> = {};
  private remembered: DedupeState = {};
  private runs = 0;

  constructor(
    private readonly sandbox: Sandbox,
    private readonly code: string,
    private readonly description: ComponentDescription,
    private readonly props: Record<string, unknown>,
  ) {}

  /** The source's `db`, as values. */
  get kept(): Record<string, any> {
    return Object.fromEntries(Object.entries(this.db).map(([key, text]) => [key, JSON.parse(text)]));
  }

  hook = (method: 'deploy' | 'activate' | 'deactivate'): Promise<Played> => this.play({ method });

  tick = (): Promise<Played> => this.play({ event: JSON.stringify(timerEvent({ interval_seconds: 60, cron: null }, new Date())) });

  async request({ method = 'POST', path = '/', search = '', headers = {}, body = '' }: PlayedRequest): Promise<Played> {
    const isText = typeof body === 'string' || Buffer.isBuffer(body);
    const event = httpEvent({
      method,
      path,
      search,
      headers: { ...(isText ? {} : { 'content-type': 'application/json' }), ...headers },
      body: Buffer.from(isText ? (body as string) : JSON.stringify(body)),
    });
    return this.play({ event: JSON.stringify(event) });
  }

  private async play(job: Partial<RunJob>): Promise<Played> {
    let reply: HttpReply | null = null;
    const outcome = await this.sandbox.run(
      jobOf(this.code, {
        runId: `run-${++this.runs}`,
        props: this.props,
        endpoint: this.endpoint,
        db: this.db,
        onRespond: (sent) => (reply = sent),
        ...job,
      }),
    );
    if (outcome.error) throw new Error(`${outcome.error.message}\n${outcome.error.stack}\n${JSON.stringify(outcome.logs)}`);
    for (const [key, text] of Object.entries(outcome.db)) {
      if (text === null) delete this.db[key];
      else this.db[key] = text;
    }
    const { emits, state, refused } = dedupe(outcome.emits, this.description.dedupe, this.remembered);
    if (refused.length > 0) throw new Error(refused.map(({ reason }) => reason).join('\n'));
    this.remembered = state;
    const sent = reply as HttpReply | null;
    return { emits, reply: sent && { status: sent.status, body: sent.body.toString('utf8') } };
  }
}

export interface PlayedRequest {
  method?: string;
  path?: string;
  search?: string;
  headers?: Record<string, string>;
  /** A text or bytes, or what is sent as JSON */
  body?: unknown;
}
