import { type ComponentDescription, ComponentRejected, SandboxUnavailable } from '../sandbox.js';
import { closed, type RunnerEnd } from './runner-end.js';

interface Inspection {
  isTaken: boolean;
  resolve(description: ComponentDescription): void;
  reject(error: Error): void;
}

/** The inspections in one process. */
export class Inspections {
  private readonly waiting = new Map<string, Inspection>();

  get size(): number {
    return this.waiting.size;
  }

  /** The inspection, for the one message that ends it; undefined for further ones. */
  take(id: string): Inspection | undefined {
    const inspection = this.waiting.get(id);
    if (!inspection || inspection.isTaken) return undefined;
    inspection.isTaken = true;
    return inspection;
  }

  begin(id: string): Promise<ComponentDescription> {
    return new Promise((resolve, reject) => this.waiting.set(id, { isTaken: false, resolve, reject }));
  }

  finish(id: string): void {
    this.waiting.delete(id);
  }

  /** The process has ended: the component's fault, unless we ended it. */
  rejectAll(end: RunnerEnd): void {
    const isOurs = end === closed || end.status === 'retired' || end.isForOthers;
    for (const { reject } of this.waiting.values())
      reject(isOurs ? new SandboxUnavailable(end.message) : new ComponentRejected(end.message));
  }
}
