/**
 * Objects that hold a file, a plan or a method cannot be cloned. `structuredClone` and `postMessage` copy the fields of a
 * class instance and drop its methods without a word, unless one field is of a type that they refuse: a symbol.
 */

/**
 * The value of an own, enumerable field that makes its object refuse a clone with a DataCloneError. `JSON.stringify` omits
 * such fields. Made once per class and declared as its first field, because the error shows the first such field.
 *
 * @param what - the error reads `Symbol(what) could not be cloned`
 */
export function uncloneable(what: string): symbol {
  return Symbol(what)
}
