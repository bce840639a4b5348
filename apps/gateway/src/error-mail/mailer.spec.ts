import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { createLog, LOG } from '#observability';
import { GatewayConfig } from '../gateway.config.js';
import { Mailer } from './mailer.js';

const MAIL = { to: 'ada@example.com', subject: 'An error', text: 'It failed.' };
const refusal = (responseCode: number) => Object.assign(new Error('no'), { responseCode });

describe('sending mail', () => {
  let server: SMTPServer;
  let received: string[];
  let refuse: { recipient?: Error; data?: Error };

  beforeEach(async () => {
    received = [];
    refuse = {};
    server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onRcptTo: (_address, _session, done) => done(refuse.recipient),
      onData(stream, _session, done) {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          if (!refuse.data) received.push(Buffer.concat(chunks).toString());
          done(refuse.data);
        });
      },
    });
    server.on('error', () => {});
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => new Promise<void>((resolve) => server.close(resolve)));

  const mailerTo = async (url: string | undefined) => {
    const module = await Test.createTestingModule({
      providers: [
        Mailer,
        { provide: GatewayConfig, useValue: GatewayConfig.read({ SLUICE_SMTP_URL: url }) },
        { provide: LOG, useValue: createLog('test', 'silent') },
      ],
    }).compile();
    return module.get(Mailer);
  };
  const serverUrl = () => `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`;

  it('sends a mail to its recipient, from the configured address', async () => {
    await (await mailerTo(serverUrl())).send(MAIL);
    expect(received).toEqual([expect.stringMatching(/^From: [^\r]+\r\nTo: ada@example\.com\r\nSubject: An error\r\n[^]*It failed\./)]);
  });

  it.each([
    ['a recipient that the server refuses permanently', { recipient: refusal(550) }],
    ['a mail that the server refuses permanently', { data: refusal(554) }],
  ])('does not retry %s', async (_, refused) => {
    refuse = refused;
    await (await mailerTo(serverUrl())).send(MAIL);
    expect(received).toEqual([]);
  });

  it('does not retry a mail to an address that contains none', async () => {
    await (await mailerTo(serverUrl())).send({ ...MAIL, to: '(@)' });
    expect(received).toEqual([]);
  });

  it.each([
    ['a recipient that the server refuses temporarily', { recipient: refusal(450) }],
    ['a mail that the server refuses temporarily', { data: refusal(451) }],
  ])('throws, so that the caller retries, for %s, unless it is the last attempt', async (_, refused) => {
    refuse = refused;
    const mailer = await mailerTo(serverUrl());
    await expect(mailer.send(MAIL)).rejects.toThrow();
    await mailer.send(MAIL, { isLast: true });
    expect(received).toEqual([]);
  });

  it('throws, so that the caller retries, when the server is down', async () => {
    const url = serverUrl();
    await new Promise<void>((resolve) => server.close(resolve));
    await expect((await mailerTo(url)).send(MAIL)).rejects.toMatchObject({ code: 'ESOCKET' });
  });

  it('sends nothing and does not fail when no server is configured', async () => {
    await (await mailerTo(undefined)).send(MAIL);
    expect(received).toEqual([]);
  });
});
