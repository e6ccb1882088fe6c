//! Opening a shared library, and saying what is missing where that fails.

use libloading::Library;

/// A library that is not here, or not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The library itself.
    #[error("{soname} is not installed; Debian has it in {debian}, Red Hat in {redhat}")]
    Library {
        /// The name that was looked for.
        soname: &'static str,
        /// Debian's package.
        debian: &'static str,
        /// Red Hat's package.
        redhat: &'static str,
    },
    /// A function of it: it is too old.
    #[error("{soname} has no {symbol}; a later version is needed (package {debian})")]
    Symbol {
        /// The library.
        soname: &'static str,
        /// The function.
        symbol: &'static str,
        /// Debian's package.
        debian: &'static str,
    },
}

/// What is known of a library before it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub soname: &'static str,
    pub debian: &'static str,
    pub redhat: &'static str,
}

impl Known {
    /// Opens it, for as long as the process lives.
    pub fn open(self) -> Result<&'static Library, Missing> {
        let Known { soname, debian, redhat } = self;
        // SAFETY: the constructors of rdma-core's libraries have no precondition; a library that
        // is never closed leaves no dangling function.
        let opened = unsafe { Library::new(soname) };
        let library = opened.map_err(|_| Missing::Library { soname, debian, redhat })?;
        Ok(Box::leak(Box::new(library)))
    }

    /// The function of this name.
    ///
    /// # Safety
    /// `F` must be the type of the function as its header declares it.
    pub unsafe fn function<F: Copy>(
        self,
        library: &'static Library,
        symbol: &'static str,
    ) -> Result<F, Missing> {
        // SAFETY: the type is the caller's promise, and the library is never closed.
        let found = unsafe { library.get::<F>(symbol) };
        let missing = |_| Missing::Symbol { soname: self.soname, symbol, debian: self.debian };
        found.map(|function| *function).map_err(missing)
    }
}

/// A table of functions of one library, each looked up by its name.
macro_rules! functions {
    (
        $(#[$doc:meta])* $table:ident of $known:expr;
        $($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+
    ) => {
        $(#[$doc])*
        #[allow(missing_docs, reason = "they are the library's, with its names")]
        #[derive(Clone, Copy)]
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)+
        }

        impl $table {
            /// Opens the library and looks all of them up.
            pub fn load() -> Result<$table, $crate::Missing> {
                let known = $known;
                let library = known.open()?;
                Ok($table {
                    // SAFETY: the type is the one that the header declares (checked by reading).
                    $($name: unsafe { known.function(library, stringify!($name))? },)+
                })
            }
        }
    };
}
pub(crate) use functions;
