import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { GatewayConfig } from '../gateway.config.js';
import { Mailer } from './mailer.js';

const MAIL = { to: 'ada@example.com', subject: 'An error', text: 'It failed.' };
const refusal = (responseCode: number, message = 'no') => Object.assign(new Error(message), { responseCode });

describe('sending mail', () => {
  let server: SMTPServer;
  let received: string[];
  let passwords: unknown[];
  let refuse: { sender?: Error; recipient?: Error; data?: Error };

  beforeEach(async () => {
    received = [];
    passwords = [];
    refuse = {};
    server = new SMTPServer({
      authOptional: true,
      allowInsecureAuth: true,
      disabledCommands: ['STARTTLS'],
      onAuth: ({ username, password }, _session, done) => {
        passwords.push(password);
        done(null, { user: username });
      },
      onMailFrom: (_address, _session, done) => done(refuse.sender),
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
      providers: [Mailer, { provide: GatewayConfig, useValue: GatewayConfig.read({ SLUICE_SMTP_URL: url }) }],
    }).compile();
    return module.get(Mailer);
  };
  const port = () => (server.server.address() as AddressInfo).port;
  const send = async (mail: Partial<typeof MAIL> = {}, url = `smtp://127.0.0.1:${port()}`) =>
    (await mailerTo(url)).send({ ...MAIL, ...mail });

  it('sends a mail to its recipient, from the configured address', async () => {
    expect(await send()).toEqual({ outcome: 'sent' });
    expect(received).toEqual([expect.stringMatching(/^From: [^\r]+\r\nTo: ada@example\.com\r\nSubject: An error\r\n[^]*It failed\./)]);
  });

  it('is refused if the server refuses the recipient', async () => {
    refuse = { recipient: refusal(550, 'no such user') };
    expect(await send()).toEqual({ outcome: 'refused', reason: expect.stringContaining('550 no such user') });
  });

  it('is refused if the recipient is not an address', async () => {
    expect(await send({ to: '(@)' })).toEqual({ outcome: 'refused', reason: expect.any(String) });
  });

  it.each([
    ['the sender', { sender: refusal(550) }],
    ['the recipient temporarily, as by greylisting', { recipient: refusal(450) }],
    ['to relay', { recipient: refusal(550, 'relaying denied') }],
    ['the mail temporarily', { data: refusal(451) }],
    ['the mail', { data: refusal(554) }],
  ])('can succeed later if the server refuses %s', async (_, refused) => {
    refuse = refused;
    expect(await send()).toEqual({ outcome: 'failed', reason: expect.any(String) });
    refuse = {};
    expect(await send()).toEqual({ outcome: 'sent' });
    expect(received).toHaveLength(1);
  });

  it('does not report the text that a server quotes in its refusal', async () => {
    refuse = { data: refusal(554, '5.7.1 An error is not a subject') };
    expect(await send()).toEqual({ outcome: 'failed', reason: '554 5.7.1' });
  });

  it('fails while the server is down, and so does the check of the server', async () => {
    const mailer = await mailerTo(`smtp://127.0.0.1:${port()}`);
    await mailer.check();
    await new Promise<void>((resolve) => server.close(resolve));
    await expect(mailer.check()).rejects.toMatchObject({ code: 'ESOCKET' });
    expect(await mailer.send(MAIL)).toMatchObject({ outcome: 'failed' });
  });

  it('sends no password to another machine that does not encrypt, unless the URL allows it', async () => {
    // reaches this machine, but is not recognised as its address
    const url = `smtp://ada:secret@0.0.0.0:${port()}`;
    expect(await send({}, url)).toEqual({ outcome: 'failed', reason: expect.stringContaining('STARTTLS') });
    expect(passwords).toEqual([]);
    expect(await send({}, `${url}?requireTLS=false`)).toEqual({ outcome: 'sent' });
    expect(await send({}, `smtp://ada:secret@127.0.0.1:${port()}`)).toEqual({ outcome: 'sent' });
    expect(passwords).toEqual(['secret', 'secret']);
  });

  it('is not configured without the URL of a server', async () => {
    expect((await mailerTo(undefined)).isConfigured).toBe(false);
    expect((await mailerTo('smtp://127.0.0.1')).isConfigured).toBe(true);
  });
});
