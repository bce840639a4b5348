import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { FindWithdrawnEmits, findWithdrawnEmits, type WaitingEmitKey } from '#contracts';
import { Handles } from '#messaging';
import { WithdrawnEmitsRepository } from './withdrawn-emits.repository.js';

/** Returns which waiting emits are withdrawn. The runtime queries it before it emits them. */
@Controller()
export class WithdrawnEmitsController {
  constructor(private readonly withdrawn: WithdrawnEmitsRepository) {}

  @Handles(findWithdrawnEmits)
  find(@Payload() { emits }: FindWithdrawnEmits): Promise<WaitingEmitKey[]> {
    return this.withdrawn.find(emits);
  }
}
