import { type DynamicModule, Module } from '@nestjs/common';
import { SecretBox } from './secret-box.js';

/** The keys for the whole app. */
@Module({})
export class SecretsModule {
  static with(box: SecretBox): DynamicModule {
    return { module: SecretsModule, global: true, providers: [{ provide: SecretBox, useValue: box }], exports: [SecretBox] };
  }
}
