//! Requests in the order in which they were posted. MPI completes them in any order, and a poll
//! asks for the oldest alone.

/// A first-in first-out queue of fixed room.
pub struct Queue<T> {
    places: Box<[T]>,
    first: usize,
    length: usize,
}

impl<T: Copy + Default> Queue<T> {
    /// With room for so many.
    pub fn new(room: usize) -> Queue<T> {
        Queue { places: vec![T::default(); room].into_boxed_slice(), first: 0, length: 0 }
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether no more fits.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.length == self.places.len()
    }

    /// The oldest.
    #[inline(always)]
    pub fn front(&mut self) -> Option<&mut T> {
        if self.length == 0 { None } else { self.places.get_mut(self.first) }
    }

    /// Takes the oldest out.
    #[inline(always)]
    pub fn pop(&mut self) {
        if self.length > 0 {
            self.first = self.after(self.first, 1);
            self.length -= 1;
        }
    }

    /// Adds one. The caller ensures that there is room.
    #[inline(always)]
    pub fn push(&mut self, one: T) {
        if !self.is_full() {
            let last = self.after(self.first, self.length);
            self.places[last] = one;
            self.length += 1;
        }
    }

    #[inline(always)]
    fn after(&self, place: usize, more: usize) -> usize {
        let place = place + more;
        if place >= self.places.len() { place - self.places.len() } else { place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_first_goes_first_over_the_end_and_no_more_than_fits() {
        let mut queue = Queue::new(3);
        for number in 0..10 {
            queue.push(number);
            queue.push(number + 100);
            assert_eq!((queue.front().copied(), queue.len()), (Some(number), 2));
            queue.pop();
            assert_eq!(queue.front().copied(), Some(number + 100));
            queue.pop();
            assert_eq!((queue.front().copied(), queue.len()), (None, 0));
        }
        (0..5).for_each(|number| queue.push(number));
        assert!(queue.is_full());
        assert_eq!((queue.len(), queue.front().copied()), (3, Some(0)));
    }
}
