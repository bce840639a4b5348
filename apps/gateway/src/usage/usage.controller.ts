import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { type RunFinished, runFinished } from '#contracts';
import { ConsumesBatch } from '#messaging';
import { UsageRepository } from './usage.repository.js';

/** Adds up the usage of sources: one statement for a batch of finished runs. */
@Controller()
export class UsageController {
  constructor(private readonly usage: UsageRepository) {}

  @ConsumesBatch(runFinished, 'usage', { vital: false, concurrency: 1, maxOutstanding: 1000, gatherMs: 250 })
  async finished(@Payload() runs: RunFinished[]): Promise<void> {
    await this.usage.count(runs);
  }
}
