import { Module } from '@nestjs/common';
import { FairnessModule } from '#fairness';
import { SandboxLife, sandboxProvider } from './sandbox.provider.js';
import { Sandbox } from './sandbox.js';

@Module({ imports: [FairnessModule], providers: [sandboxProvider, SandboxLife], exports: [Sandbox] })
export class SandboxModule {}
