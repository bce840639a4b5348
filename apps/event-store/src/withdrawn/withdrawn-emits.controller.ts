import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { FindWithdrawnEmits, findWithdrawnEmits, type WaitingEmitKey } from '#contracts';
import { Answers } from '#messaging';
import { WithdrawnEmitsRepository } from './withdrawn-emits.repository.js';

/** Tells which emits that wait are not wanted any more: the runtime asks before it lets them go. */
@Controller()
export class WithdrawnEmitsController {
  constructor(private readonly withdrawn: WithdrawnEmitsRepository) {}

  @Answers(findWithdrawnEmits)
  find(@Payload() { emits }: FindWithdrawnEmits): Promise<WaitingEmitKey[]> {
    return this.withdrawn.find(emits);
  }
}
