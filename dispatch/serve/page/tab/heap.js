// A heap: the smallest of what was put in comes out first.

export class Heap {
  /** @param {(a: T, b: T) => number} compare negative where `a` comes out before `b` */
  constructor(compare) {
    this.compare = compare;
    this.items = [];
  }

  get size() {
    return this.items.length;
  }

  /** Return the smallest without taking it; undefined when there is none. */
  get top() {
    return this.items[0];
  }

  push(item) {
    const { items } = this;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.compare(item, items[parent]) >= 0) break;
      items[at] = items[parent];
      at = parent;
    }
    items[at] = item;
  }

  pop() {
    const { items } = this;
    const top = items[0];
    const last = items.pop();
    if (!items.length) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && this.compare(items[child + 1], items[child]) < 0) child++;
      if (this.compare(items[child], last) >= 0) break;
      items[at] = items[child];
      at = child;
    }
    items[at] = last;
    return top;
  }
}
