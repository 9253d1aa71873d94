// The assignment of least total cost (Kuhn 1955, in the form of shortest augmenting paths by Jonker and Volgenant 1987).

/**
 * The column of each row so that the sum of their costs is least.
 * @param {number[][]} costs (n, n)
 * @returns {number[]} (n,)
 */
export function assign(costs) {
  const count = costs.length;
  const [rowPrices, columnPrices] = [new Array(count + 1).fill(0), new Array(count + 1).fill(0)];
  const rowOf = new Array(count + 1).fill(0); // of each column, both from 1 on; 0: free
  for (let row = 1; row <= count; row++) {
    const [slack, previous, visited] = [new Array(count + 1).fill(Infinity), new Array(count + 1).fill(0), new Set()];
    let column = 0;
    rowOf[0] = row;
    do {
      visited.add(column);
      let [nearest, step] = [0, Infinity];
      for (let next = 1; next <= count; next++) {
        if (visited.has(next)) continue;
        const cost = costs[rowOf[column] - 1][next - 1] - rowPrices[rowOf[column]] - columnPrices[next];
        if (cost < slack[next]) [slack[next], previous[next]] = [cost, column];
        if (slack[next] < step) [nearest, step] = [next, slack[next]];
      }
      for (let next = 0; next <= count; next++) {
        if (visited.has(next)) {
          rowPrices[rowOf[next]] += step;
          columnPrices[next] -= step;
        } else slack[next] -= step;
      }
      column = nearest;
    } while (rowOf[column]);
    while (column) {
      rowOf[column] = rowOf[previous[column]];
      column = previous[column];
    }
  }
  const columns = new Array(count);
  for (let column = 1; column <= count; column++) columns[rowOf[column] - 1] = column - 1;
  return columns;
}
