import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { Controller, Get, HttpCode, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { endOf, noticeEndOfWork } from './work-in-progress.js';

describe('the work for a request', () => {
  let app: NestFastifyApplication;
  let server: Server;
  let begun: PromiseWithResolvers<void>;
  let work: PromiseWithResolvers<string>;
  let hasEnded: boolean;
  const settled = () => new Promise((resolve) => setTimeout(resolve, 50));
  const result = (): Promise<string> => {
    begun.resolve();
    return work.promise;
  };

  @Controller()
  class Works {
    @Get(['text', 'in-last-hook'])
    text(): Promise<string> {
      return result();
    }

    @Get('nothing')
    @HttpCode(304)
    async nothing(): Promise<void> {
      await result();
    }

    @Get('list')
    async list(): Promise<Readable> {
      return Readable.from([await result(), 'more']);
    }

    @Get('in-hook')
    neverCalled(): void {}
  }

  @Module({ controllers: [Works] })
  class WorksModule {}

  beforeEach(async () => {
    begun = Promise.withResolvers();
    work = Promise.withResolvers();
    hasEnded = false;
    app = await NestFactory.create<NestFastifyApplication>(WorksModule, new FastifyAdapter({ forceCloseConnections: true }), {
      logger: false,
    });
    const fastify = app.getHttpAdapter().getInstance();
    noticeEndOfWork(app, fastify);
    fastify.addHook('preParsing', (request, reply, _payload, done) => {
      void endOf(request, reply).then(() => (hasEnded = true));
      done();
    });
    fastify.addHook('preHandler', async ({ url }) => {
      if (url === '/in-hook') throw new Error(await result());
    });
    fastify.addHook('onSend', async ({ url }) => {
      if (url === '/in-last-hook') throw new Error('failed');
    });
    await app.listen(0, '127.0.0.1');
    server = app.getHttpServer();
  });
  afterEach(() => app.close());

  const send = (request: string) => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
    client.write(`${request} HTTP/1.1\r\nhost: x\r\n\r\n`);
    return client;
  };
  const disconnected = async () => {
    const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    while ((await connections()) > 0) await settled();
  };
  const REQUESTS = ['GET /text', 'HEAD /text', 'GET /in-hook', 'GET /in-last-hook', 'GET /nothing', 'GET /list', 'HEAD /list'];

  it.each(REQUESTS)('ends after its client has disconnected: %s', async (request) => {
    const client = send(request);
    await begun.promise;
    client.destroy();
    await disconnected();
    await settled();
    expect(hasEnded).toBe(false);
    work.resolve('done');
    while (!hasEnded) await settled();
  });

  it.each(REQUESTS)('ends when it fails after its client has disconnected: %s', async (request) => {
    const client = send(request);
    await begun.promise;
    client.destroy();
    await disconnected();
    work.reject(new Error('failed'));
    while (!hasEnded) await settled();
  });

  it.each(REQUESTS)('ends with the response: %s', async (request) => {
    const client = send(request);
    await begun.promise;
    expect(hasEnded).toBe(false);
    work.resolve('done');
    while (!hasEnded) await settled();
    client.destroy();
  });

  it.each(['GET /text', 'GET /list'])('does not end while its client does not read the response: %s', async (request) => {
    const client = send(request).pause();
    await begun.promise;
    work.resolve('x'.repeat(32 << 20));
    await settled();
    expect(hasEnded).toBe(false);
    client.resume();
    await once(client, 'data');
    while (!hasEnded) await settled();
    client.destroy();
  });
});
