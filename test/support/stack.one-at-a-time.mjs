import TestRunner from 'jest-runner';

/** Runs its test files one after the other, regardless of maxWorkers. */
export default class OneAtATimeRunner extends TestRunner {
  isSerial = true;
}
