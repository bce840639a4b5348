import { TestEnvironment } from 'jest-environment-node';

// Jest waits half a second for a worker to exit, and then warns that a test leaks. Without this, Node would first destroy hundreds of megabytes of
// modules one by one, which takes longer on a busy machine.
if (process.env.JEST_WORKER_ID && process.send) process.once('exit', (code) => process.reallyExit(code));

export default TestEnvironment;
