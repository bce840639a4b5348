import { Inject, Injectable } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { RuntimeConfig } from '../runtime.config.js';
import type { RunJob, RunOutcome } from '../sandbox/sandbox.js';

/** Logs what components write to the console, and their errors, so that their authors see it where they started Sluice. */
@Injectable()
export class ComponentConsole {
  constructor(
    private readonly config: RuntimeConfig,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** source: its name slug. */
  show(source: string, { sourceId, runId, method }: Pick<RunJob, 'sourceId' | 'runId' | 'method'>, { logs, error }: RunOutcome): void {
    if (!this.config.logsComponents) return;
    for (const { level, message } of logs) this.log.info({ source, source_id: sourceId, console: level, message }, 'component.logged');
    if (error)
      this.log.info({ source, source_id: sourceId, run_id: runId, method, stack: error.stack || error.message }, 'component.threw');
  }
}
