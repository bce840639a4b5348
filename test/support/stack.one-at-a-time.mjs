import TestRunner from 'jest-runner';

/** Runs its test files one after the other, whatever maxWorkers says. */
export default class OneAtATimeRunner extends TestRunner {
  isSerial = true;
}
