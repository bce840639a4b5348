import type { Server } from 'node:http';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { letClientsLeave } from '#http-server';
import { ServiceConfig } from '#service';

/** When the service stops, and before anything else stops, clients are asked to leave. Their requests are still handled. */
@Injectable()
export class LeavingClients implements OnModuleDestroy {
  constructor(private readonly host: HttpAdapterHost) {}

  async onModuleDestroy(): Promise<void> {
    const { httpAdapter } = this.host as Partial<HttpAdapterHost>;
    // a module that was only compiled has no server
    if (!httpAdapter) return;
    await letClientsLeave(httpAdapter.getHttpServer() as Server, ServiceConfig.read().shutdownDelayMs);
  }
}
