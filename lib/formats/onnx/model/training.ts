/** How a model is trained: TrainingInfoProto. */
import type { Message } from '../protobuf/message.js'
import { Graph } from './graph.js'

/** One way of training. Bindings say which output of a graph becomes the next value of which initializer. */
export interface TrainingInfo {
  /** Makes the values that training begins with. */
  readonly initialization?: Graph
  /** One step. */
  readonly algorithm?: Graph
  /** Outputs of `initialization` by the initializer that takes them. */
  readonly initializationBinding: ReadonlyMap<string, string>
  /** Outputs of `algorithm` by the initializer that takes them. */
  readonly updateBinding: ReadonlyMap<string, string>
}

export function readTraining(message: Message): TrainingInfo {
  const [initialization, algorithm] = ['initialization', 'algorithm'].map((name) => message.message(name))
  return {
    ...(initialization && { initialization: Graph.of(initialization) }),
    ...(algorithm && { algorithm: Graph.of(algorithm) }),
    initializationBinding: bindingOf(message, 'initialization_binding'),
    updateBinding: bindingOf(message, 'update_binding'),
  }
}

function bindingOf(message: Message, list: string): ReadonlyMap<string, string> {
  return new Map(message.messages(list).map((each) => [each.text('key'), each.text('value')]))
}
