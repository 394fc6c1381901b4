/** A tensor of a caller under the name that a model has for it. */
import { inspect } from 'node:util'
import type { Tensor } from './tensor.js'

/** A view of a new tensor under its name in the graph. The tensor belongs to the caller and is not changed. */
export function withName(tensor: Tensor, name: string): Tensor {
  if (tensor.name === name) return tensor
  return new Proxy(tensor, {
    get(target, key, proxy) {
      if (key === 'name') return name
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      // Other methods may use private fields, which the proxy does not have.
      const isDescription = key === 'toJSON' || key === inspect.custom
      return value.bind(isDescription ? proxy : target)
    },
  })
}
