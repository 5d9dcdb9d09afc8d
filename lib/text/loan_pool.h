#pragma once
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace quipu {

/// Lends objects of T for the time of a call, so that threads share none; as many are made as are needed at once.
template <typename T>
class LoanPool {
 public:
  class Loan {
   public:
    explicit Loan(LoanPool& pool) : pool_(pool) {
      {
        const std::scoped_lock lock(pool_.mutex_);
        if (!pool_.idle_.empty()) {
          lent_ = std::move(pool_.idle_.back());
          pool_.idle_.pop_back();
        }
      }
      if (!lent_) lent_ = std::make_unique<T>();
    }
    ~Loan() {
      const std::scoped_lock lock(pool_.mutex_);
      pool_.idle_.push_back(std::move(lent_));
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    T& operator*() const { return *lent_; }
    T* operator->() const { return lent_.get(); }

   private:
    LoanPool& pool_;
    std::unique_ptr<T> lent_;
  };

  Loan borrow() { return Loan(*this); }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;  // guarded by mutex_
};

}  // namespace quipu
