export {
  Emitter,
  type EmitterChange,
  EmitterChangeHandler,
  EmitterDirectory,
  emittersSchema,
  isUncertain,
  updateCreation,
} from './directory.js';
export { EmittersModule } from './emitters.module.js';
