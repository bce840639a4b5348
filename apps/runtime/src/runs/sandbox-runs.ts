import { Inject, Injectable } from '@nestjs/common';
import { endpointUrl } from '#config';
import { EVENTS_TOPIC, runsAtATime } from '#contracts';
import { Publisher } from '#messaging';
import { LOG, type Log } from '#observability';
import { SecretBox } from '#secrets';
import { openedProps } from '../deployments/opened-props.js';
import { RuntimeConfig } from '../runtime.config.js';
import { type RunError, type RunJob, type RunOutcome, Sandbox } from '../sandbox/sandbox.js';
import { timerValue } from '../timers/next-tick.js';
import { ComponentConsole } from './component-console.js';
import { type DueRun, errorRecord } from '../run-events/run-events.js';
import { type RunSource } from './run-sources.js';

/** Executes the code of a run in the sandbox, with the props and the schedules of its source. */
@Injectable()
export class SandboxRuns {
  constructor(
    private readonly sandbox: Sandbox,
    private readonly config: RuntimeConfig,
    private readonly publisher: Publisher,
    private readonly box: SecretBox,
    private readonly console: ComponentConsole,
    @Inject(LOG) private readonly log: Log,
  ) {}

  async execute(run: DueRun, { state, component, description }: RunSource, given: Pick<RunJob, 'db' | 'onRespond'>): Promise<RunOutcome> {
    const { source_id, owner_id, version, deployment } = state;
    const timers = Object.fromEntries(Object.entries(deployment.schedules).map(([prop, schedule]) => [prop, timerValue(schedule)]));
    const job: RunJob = {
      runId: run.run_id,
      accountId: owner_id,
      sourceId: source_id,
      component,
      method: run.hook?.method ?? 'run',
      props: { ...openedProps(this.box, source_id, deployment), ...timers },
      endpoint: deployment.endpoint_key === null ? null : endpointUrl(this.config.endpointsUrl, deployment.endpoint_key),
      event: run.hook ? undefined : run.event,
      httpBody: run.http_body,
      concurrency: runsAtATime(description),
      ...given,
      onLateError: (error) => void this.publishLate(run, version, error),
    };
    const outcome = await this.sandbox.run(job);
    this.console.show(deployment.name_slug, job, outcome);
    return outcome;
  }

  /** An error of code that a run left running: the run is already stored, so the error becomes a separate event. */
  private async publishLate(run: DueRun, version: number, error: RunError): Promise<void> {
    const event = errorRecord(run, error, { version });
    await this.publisher
      .send([{ topic: EVENTS_TOPIC, ...event }])
      .catch((err: Error) => this.log.warn({ run_id: run.run_id, source_id: run.source_id, err }, 'run.late-error-not-published'));
  }
}
