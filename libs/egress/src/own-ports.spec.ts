import { describe, expect, it } from '@jest/globals';
import { AddressGuard } from './address-guard.js';
import { ownPorts } from './own-ports.js';

describe('our own ports', () => {
  it.each([
    [{ KAFKA_BROKERS: 'localhost:9092,kafka-2:9093', DATABASE_URL: 'postgres://u:p@localhost:5433/postgres' }, [9092, 9093, 5433]],
    [{ DATABASE_URL: 'postgres://u:p@db/postgres' }, [9092, 5432]],
    [{ KAFKA_BROKERS: '' }, [9092]],
    [{}, [9092]],
  ])('with %j are %j', (env, ports) => expect(ownPorts(env)).toEqual(ports));

  it('are refused on private hosts that are otherwise allowed', async () => {
    const guard = AddressGuard.fromConfig('127.0.0.0/8', { ownPorts: [5433] });
    await expect(guard.resolve('127.0.0.1', 4000)).resolves.toMatchObject({ address: '127.0.0.1' });
    await expect(guard.resolve('127.0.0.1', 5433)).rejects.toThrow('may not be called');
  });
});
