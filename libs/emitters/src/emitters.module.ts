import { Controller, type DynamicModule, Module, type Provider } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { emitterChanged, EmitterState } from '#contracts';
import { Hears, ignored, type Outcome } from '#messaging';
import { EmitterDirectory, EmitterListener } from './directory.js';

@Controller()
class EmitterFactsController {
  constructor(private readonly directory: EmitterDirectory) {}

  @Hears(emitterChanged)
  async changed(@Payload() state: EmitterState): Promise<Outcome | void> {
    if (!(await this.directory.learn(state))) return ignored('a state as new is known');
  }
}

/** The directory of a room and its handler for the facts of the catalog. The room's database has the table `emitter`. */
@Module({})
export class EmittersModule {
  /** listener: additional work when a change is applied; `imports`: the modules that its constructor needs. */
  static forRoom(listener?: { useClass: new (...args: never[]) => EmitterListener; imports?: DynamicModule['imports'] }): DynamicModule {
    const listeners: Provider[] = listener ? [{ provide: EmitterListener, useClass: listener.useClass }] : [];
    return {
      module: EmittersModule,
      global: true,
      imports: listener?.imports ?? [],
      controllers: [EmitterFactsController],
      providers: [EmitterDirectory, ...listeners],
      exports: [EmitterDirectory],
    };
  }
}
