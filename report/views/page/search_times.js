// Binary search in ascending times.

// The index of the first that is not before a time.
export const firstFrom = (time, wanted) => {
  let low = 0, high = time.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
};
