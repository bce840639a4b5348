import { Controller, type DynamicModule, Module, type Provider } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import { emitterChanged, EmitterState } from '#contracts';
import { Consumes, deadlineOf, ignored, LogRecord, type Outcome } from '#messaging';
import { EmitterChangeHandler, EmitterDirectory } from './directory.js';
import { LostFacts } from './lost-facts.js';

const SETTINGS = {
  // facts are rarer than events, and cost less when they are repeated
  commitEveryMs: 500,
  // the end of a source may take minutes: an account that deletes many must not delay the facts of others
  groupOf: ({ owner_id }: EmitterState) => owner_id,
  groupConcurrency: 8,
  loneGroupConcurrency: 28,
  // those that wait must not keep the facts of others from being read
  maxOutstanding: 10_000,
};

@Controller()
class EmitterFactsController {
  constructor(private readonly directory: EmitterDirectory) {}

  @Consumes(emitterChanged, undefined, SETTINGS)
  async changed(@Payload() state: EmitterState, @Ctx() record: LogRecord): Promise<Outcome | void> {
    // the catalog announces what it has just stored
    const isAnnounced = record.topic !== emitterChanged.topic;
    const isNew = isAnnounced ? this.directory.learnAnnounced(state, deadlineOf(record)) : this.directory.learnFromTopic(state);
    if (!(await isNew)) return ignored('a state as new is known');
  }
}

/** The directory of an app and its handler for the facts of the catalog. The app's database has the table `emitter`. */
@Module({})
export class EmittersModule {
  /** handler: additional work when a change is applied; `imports`: the modules that its constructor needs. */
  static forApp(handler?: { useClass: new (...args: never[]) => EmitterChangeHandler; imports?: DynamicModule['imports'] }): DynamicModule {
    const handlers: Provider[] = handler ? [{ provide: EmitterChangeHandler, useClass: handler.useClass }] : [];
    return {
      module: EmittersModule,
      global: true,
      imports: handler?.imports ?? [],
      controllers: [EmitterFactsController],
      providers: [EmitterDirectory, LostFacts, ...handlers],
      exports: [EmitterDirectory],
    };
  }
}
