export { Emitter, type EmitterChange, EmitterChangeHandler, EmitterDirectory, emittersSchema, updateCreation } from './directory.js';
export { EmittersModule } from './emitters.module.js';
